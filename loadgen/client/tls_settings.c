// SPDX-License-Identifier: MIT
#include "loadgen/client/tls_settings.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>

static const char certificate_required[] =
    "tlsv13 alert certificate required (it wants one of its clients: --tls-cert FILE)";

const char *tls_last_words(void)
{
    const unsigned long last = ERR_peek_error();
    const char *words = ERR_GET_REASON(last) == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED
                            ? certificate_required
                            : ERR_reason_error_string(last);
    return words ? words : "it broke off or stayed silent without a reason (does it speak TLS?)";
}

bool tls_was_refused(void)
{
    return ERR_GET_REASON(ERR_peek_error()) > SSL_AD_REASON_OFFSET;
}

// Nobody is asked for the words that a key may be locked with.
static int no_words(char *words, int room, int writes, void *unused)
{
    (void)words, (void)room, (void)writes, (void)unused;
    return -1;
}

static int take_certificate(SSL_CTX *context, const struct tls_settings *settings,
                            struct error *err)
{
    const char *key = settings->key[0] ? settings->key : settings->certificate;
    if (!settings->certificate[0])
        return 0;
    SSL_CTX_set_default_passwd_cb(context, no_words);
    if (SSL_CTX_use_certificate_chain_file(context, settings->certificate) != 1)
        return error_set(err, ERROR_INPUT, "%s holds no certificate to show: %s",
                         settings->certificate, tls_last_words());
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return error_set(err, ERROR_INPUT,
                         "%s holds no key of the certificate in %s, or a locked one: %s", key,
                         settings->certificate, tls_last_words());
    return 0;
}

// Whom nobody has to believe needs no chain of certificates: OpenSSL would look for one in the
// machine's folder at each handshake, and not find it.
static int believe(X509_STORE_CTX *chain, void *context)
{
    (void)context;
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
}

int tls_context_make(const struct tls_settings *settings, const struct server_address *server,
                     const char *alpn, SSL_CTX **context, struct error *err)
{
    *context = NULL;
    if (!settings || !settings->on)
        return 0;
    if (server->transport != SERVER_TCP)
        return error_set(err, ERROR_INPUT, "%s: TLS goes over TCP only", server->text);
    SSL_CTX *made = SSL_CTX_new(TLS_client_method());
    if (!made)
        return error_set(err, ERROR_FAILED, "out of memory for TLS");
    SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
    SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    // Each connection keeps its own session; there is no cache that threads would share.
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(made, settings->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (settings->insecure)
        SSL_CTX_set_cert_verify_callback(made, believe, NULL);
    unsigned char name[32];
    if (alpn) {
        name[0] = (unsigned char)strlen(alpn);
        memcpy(name + 1, alpn, name[0]);
        SSL_CTX_set_alpn_protos(made, name, name[0] + 1u);
    }
    ERR_clear_error();
    int found = settings->ca[0] ? SSL_CTX_load_verify_file(made, settings->ca)
                                : SSL_CTX_set_default_verify_paths(made);
    if (found != 1) {
        SSL_CTX_free(made);
        return error_set(err, ERROR_INPUT, "%s holds no certificates to believe: %s", settings->ca,
                         tls_last_words());
    }
    if (take_certificate(made, settings, err) < 0) {
        SSL_CTX_free(made);
        return -(int)err->kind;
    }
    *context = made;
    return 0;
}

const char tls_in_vain[] = "1,000 records of TLS in a row without data";

static void count_record(int writes, int version, int type, const void *bytes, size_t count,
                         SSL *tls, void *records)
{
    (void)version, (void)bytes, (void)count;
    if (!writes && type == SSL3_RT_HEADER && ++*(unsigned *)records > TLS_RECORDS_IN_VAIN &&
        SSL_get_fd(tls) >= 0)
        shutdown(SSL_get_fd(tls), SHUT_RDWR);
}

void tls_count_records(SSL *tls, unsigned *records)
{
    *records = 0;
    SSL_set_msg_callback(tls, count_record);
    SSL_set_msg_callback_arg(tls, records);
}

static bool is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

SSL *tls_connection_make(SSL_CTX *context, const struct server_address *server)
{
    SSL *tls = SSL_new(context);
    if (!tls)
        return NULL;
    bool right = is_address(server->host)
                     ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), server->host) == 1
                     : SSL_set_tlsext_host_name(tls, server->host) == 1 &&
                           SSL_set1_host(tls, server->host) == 1;
    if (!right) {
        SSL_free(tls);
        return NULL;
    }
    SSL_set_connect_state(tls);
    return tls;
}

int tls_refuse(SSL *tls, const struct server_address *server, struct error *err)
{
    long verdict = SSL_get_verify_result(tls);
    if (verdict != X509_V_OK && SSL_get_verify_mode(tls) != SSL_VERIFY_NONE)
        return error_set(err, ERROR_INPUT,
                         "%s: its certificate is not believed: %s (give its authority by --tls-ca, "
                         "or believe anything by --tls-insecure)",
                         server->text, X509_verify_cert_error_string(verdict));
    const char *words = tls_last_words();
    const bool may_want_ours =
        tls_was_refused() && !SSL_get_certificate(tls) && words != certificate_required;
    return error_set(
        err, ERROR_INPUT, "%s: no TLS with it: %s%s", server->text, words,
        may_want_ours ? " (where it wants a certificate of its clients: --tls-cert FILE)" : "");
}
