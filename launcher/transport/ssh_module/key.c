/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/objects.h>
#include <string.h>

#include "base/mem.h"

#define BLOB_MAX 16384
#define ED25519_SIZE 32
#define RSA_BITS_MIN 1024 /* OpenSSH refuses smaller ones */

static const struct key_type types[] = {
    {"ssh-ed25519", "ssh-ed25519", "ed25519", NULL, NID_ED25519, NULL},
    {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", "ecdsa", "nistp256", NID_X9_62_prime256v1,
     EVP_sha256},
    {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384", "ecdsa", "nistp384", NID_secp384r1, EVP_sha384},
    {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521", "ecdsa", "nistp521", NID_secp521r1, EVP_sha512},
    {"ssh-rsa", "rsa-sha2-512", "rsa", NULL, NID_rsaEncryption, EVP_sha512},
};

const struct key_type *key_type_find(struct byte_view name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (view_is(name, types[i].name))
            return &types[i];
    }
    return NULL;
}

static const struct key_type *type_of(EVP_PKEY *private)
{
    char group[64] = "";
    int nid = EVP_PKEY_get_base_id(private);

    if (nid == EVP_PKEY_EC && EVP_PKEY_get_group_name(private, group, sizeof group, NULL) == 1) {
        nid = OBJ_txt2nid(group);
        if (nid == NID_undef)
            nid = EC_curve_nist2nid(group);
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].nid == nid)
            return &types[i];
    }
    return NULL;
}

static int put_number(struct buf *out, EVP_PKEY *private, const char *which)
{
    BIGNUM *number = NULL;
    AUTO_FREE unsigned char *bytes = NULL;
    int length;

    if (EVP_PKEY_get_bn_param(private, which, &number) != 1)
        return -1;
    bytes = mem_alloc((size_t)BN_num_bytes(number) + 1);
    length = BN_bn2bin(number, bytes);
    BN_free(number);
    return fields_put_mpint(out, bytes, (size_t)length);
}

static int put_point(struct buf *out, EVP_PKEY *private)
{
    unsigned char point[256];
    size_t length = 0;

    (void)EVP_PKEY_set_utf8_string_param(private, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                         OSSL_PKEY_EC_POINT_CONVERSION_FORMAT_UNCOMPRESSED);
    if (EVP_PKEY_get_octet_string_param(private, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                        &length) != 1)
        return -1;
    return fields_put_string(out, point, length);
}

static int put_public(struct buf *out, const struct key_type *type, EVP_PKEY *private)
{
    unsigned char raw[ED25519_SIZE];
    size_t length = sizeof raw;

    if (fields_put_text(out, type->name) < 0)
        return -1;
    if (type->nid == NID_ED25519)
        return EVP_PKEY_get_raw_public_key(private, raw, &length) == 1
                   ? fields_put_string(out, raw, length)
                   : -1;
    if (type->curve)
        return fields_put_text(out, type->curve) < 0 ? -1 : put_point(out, private);
    if (put_number(out, private, OSSL_PKEY_PARAM_RSA_E) < 0)
        return -1;
    return put_number(out, private, OSSL_PKEY_PARAM_RSA_N);
}

/* libssh2 takes the name of the signature from the first string of the blob; OpenSSH reads an RSA
 * blob under that name as well. */
static int put_auth_blob(struct key *key)
{
    struct fields fields = fields_of(buf_text(&key->blob), key->blob.length);

    (void)fields_string(&fields);
    if (fields_put_text(&key->auth_blob, key->type->signature) < 0)
        return -1;
    return buf_append(&key->auth_blob, fields.at, fields.left);
}

static struct key *key_create(const struct key_type *type, const char *origin)
{
    struct key *key = mem_alloc(sizeof *key);

    key->type = type;
    key->origin = mem_strdup(origin);
    buf_init(&key->blob, BLOB_MAX);
    buf_init(&key->auth_blob, BLOB_MAX + 64);
    return key;
}

struct key *key_create_take(EVP_PKEY *private, const char *origin, struct error *err)
{
    const struct key_type *type = type_of(private);
    struct key *key;

    if (!type) {
        EVP_PKEY_free(private);
        error_set(
            err, "a key of a type that hvdrun cannot use for SSH (it uses ed25519, ecdsa and rsa)");
        return NULL;
    }
    if (type->nid == NID_rsaEncryption && EVP_PKEY_get_bits(private) < RSA_BITS_MIN) {
        EVP_PKEY_free(private);
        error_set(err,
                  "an RSA key of less than %d bits, which servers refuse: create a new one with "
                  "ssh-keygen",
                  RSA_BITS_MIN);
        return NULL;
    }
    key = key_create(type, origin);
    key->private = private;
    if (put_public(&key->blob, type, private) < 0 || put_auth_blob(key) < 0) {
        error_set(err, "cannot derive its public half");
        key_destroy(key);
        return NULL;
    }
    return key;
}

struct key *key_create_public(struct byte_view blob, const char *origin, struct error *err)
{
    struct byte_view name = key_blob_type(blob);
    const struct key_type *type = key_type_find(name);
    struct key *key;

    if (!type) {
        error_set(err, "a key of type \"%.*s\", which only the ssh program can use",
                  (int)(name.length < 64 ? name.length : 64), (const char *)name.at);
        return NULL;
    }
    key = key_create(type, origin);
    if (buf_append(&key->blob, blob.at, blob.length) < 0 || put_auth_blob(key) < 0) {
        error_set(err, "a key that is too large");
        key_destroy(key);
        return NULL;
    }
    return key;
}

void key_destroy(struct key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->private); /* OpenSSL wipes it */
    buf_destroy(&key->blob);
    buf_destroy(&key->auth_blob);
    mem_free_at(&key->origin);
    mem_free_at(&key);
}

bool key_is_rsa(const struct key *key)
{
    return key->type->nid == NID_rsaEncryption;
}

/* OpenSSL's ECDSA signatures are DER; SSH wants the two numbers. */
static int put_ecdsa(struct buf *out, const unsigned char *der, size_t length)
{
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)length);
    const BIGNUM *numbers[2];
    int rc = 0;

    if (!pair)
        return -1;
    numbers[0] = ECDSA_SIG_get0_r(pair);
    numbers[1] = ECDSA_SIG_get0_s(pair);
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        unsigned char bytes[80];

        if (BN_num_bytes(numbers[i]) > (int)sizeof bytes)
            rc = -1;
        else
            rc = fields_put_mpint(out, bytes, (size_t)BN_bn2bin(numbers[i], bytes));
    }
    ECDSA_SIG_free(pair);
    return rc;
}

int key_sign(const struct key *key, struct byte_view data, struct buf *signature, struct error *err)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char made[2048 + 64];
    size_t length = sizeof made;
    int rc = -1;

    if (context &&
        EVP_DigestSignInit(context, NULL, key->type->digest ? key->type->digest() : NULL, NULL,
                           key->private) == 1 &&
        EVP_DigestSign(context, made, &length, data.at, data.length) == 1)
        rc = key->type->curve ? put_ecdsa(signature, made, length)
                              : buf_append(signature, made, length);
    EVP_MD_CTX_free(context);
    return rc < 0 ? error_set(err, "OpenSSL cannot sign with the key %s", key->origin) : 0;
}
