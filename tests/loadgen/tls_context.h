// SPDX-License-Identifier: MIT
//
// What a test's own TLS server needs: a context with a key and a certificate that are made up for
// it, valid from an hour ago for two. The caller frees it.
#ifndef TESTS_LOADGEN_TLS_CONTEXT_H
#define TESTS_LOADGEN_TLS_CONTEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

static inline SSL_CTX *certified_context(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_true(key && certificate && context);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return context;
}

#endif
