// SPDX-License-Identifier: MIT
//
// What a person says of TLS, and what all connections of a load then share: whom to believe, the
// name that the certificate must have (RFC 8446, RFC 6125), and what is shown to a server that
// wants a certificate of its clients. OpenSSL's.
#ifndef LOADGEN_CLIENT_TLS_SETTINGS_H
#define LOADGEN_CLIENT_TLS_SETTINGS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/error.h"
#include "loadgen/client/server_address.h"

struct tls_settings {
    bool on;
    bool insecure;        // believe any certificate
    bool full_handshakes; // connections that are opened again resume no session
    char ca[4096]; // a file of certificates to believe; empty: those that this machine believes
    char certificate[4096]; // a file with ours and those it is signed by; empty: we have none
    char key[4096];         // a file with its key; empty: that of the certificate
};

// What connections are made from; threads may share it. NULL when TLS is off. The caller frees it
// with SSL_CTX_free. alpn: the name of what is spoken below TLS (RFC 7301), or NULL. ERROR_INPUT:
// the server is none to speak TLS with, or a file is none.
int tls_context_make(const struct tls_settings *settings, const struct server_address *server,
                     const char *alpn, SSL_CTX **context, struct error *err);

// A new connection to that server: its name, where it has one, is said (SNI) and checked. NULL: no
// memory.
SSL *tls_connection_make(SSL_CTX *context, const struct server_address *server);

// Records in a row without data, after which a server is not listened to any more: a handshake has
// ten, new keys have one. OpenSSL itself goes on for as long as there are any.
enum { TLS_RECORDS_IN_VAIN = 1000 };

// What is said of such a server.
extern const char tls_in_vain[];

// From now on each record that comes counts in *records, which must live as long as `tls`. If it
// has a socket, that is shut down when there are too many of them.
void tls_count_records(SSL *tls, unsigned *records);

// Why OpenSSL has given a handshake up, as ERROR_INPUT: a certificate that is not believed, a
// server that wants one of us, or that speaks something else.
int tls_refuse(SSL *tls, const struct server_address *server, struct error *err);

// Whether what this thread did last in OpenSSL failed by an alert of the server's. To a client
// without a certificate that it wants, or with one that it does not believe, TLS 1.3 says so only
// when the handshake is over (RFC 8446, 4.4.2.4).
bool tls_was_refused(void);

// OpenSSL's words for what this thread did last, for messages, with what helps where only one thing
// does; valid until its next call.
const char *tls_last_words(void);

#endif
