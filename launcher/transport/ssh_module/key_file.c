/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "transport/ssh_module/fields.h"

/* The inside of an "openssh-key-v1" file (PROTOCOL.key of OpenSSH). Pure. */

#define BEGIN_LINE "-----BEGIN OPENSSH PRIVATE KEY-----"
#define END_LINE "-----END OPENSSH PRIVATE KEY-----"
#define MAGIC "openssh-key-v1" /* with its NUL */

static EVP_PKEY *ed25519_from(struct fields *fields)
{
    struct byte_view public = fields_string(fields), both = fields_string(fields);

    if (fields->bad || public.length != 32 || both.length != 64 ||
        memcmp(public.at, both.at + 32, 32) != 0)
        return NULL;
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, both.at, 32);
}

static EVP_PKEY *pkey_from(const char *algorithm, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, algorithm, NULL);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY *pkey = NULL;

    if (!context || !params || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_KEYPAIR, params) != 1)
        pkey = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(context);
    return pkey;
}

/* "Secure" numbers are wiped wherever OpenSSL copies them to. */
static BIGNUM *number_of(struct byte_view bytes)
{
    BIGNUM *number = BN_secure_new();

    return number ? BN_bin2bn(bytes.at, (int)bytes.length, number) : NULL;
}

static EVP_PKEY *ecdsa_from(const struct key_type *type, struct fields *fields)
{
    struct byte_view curve = fields_string(fields), point = fields_string(fields);
    struct byte_view secret = fields_string(fields);
    OSSL_PARAM_BLD *builder;
    EVP_PKEY *pkey = NULL;
    BIGNUM *number;

    if (fields->bad || !view_is(curve, type->curve) || secret.length > 80)
        return NULL;
    builder = OSSL_PARAM_BLD_new();
    number = number_of(secret);
    if (builder && number &&
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, OBJ_nid2sn(type->nid),
                                        0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point.at,
                                         point.length) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number) == 1)
        pkey = pkey_from("EC", builder);
    BN_clear_free(number);
    OSSL_PARAM_BLD_free(builder);
    return pkey;
}

/* secret mod (prime - 1), which the file leaves out. */
static BIGNUM *exponent_of(const BIGNUM *secret, const BIGNUM *prime)
{
    BN_CTX *context = BN_CTX_secure_new();
    BIGNUM *less = BN_dup(prime), *exponent = BN_secure_new();
    bool ok = context && less && exponent && BN_sub_word(less, 1) == 1;

    if (ok) {
        BN_set_flags(less, BN_FLG_CONSTTIME);
        ok = BN_mod(exponent, secret, less, context) == 1;
    }
    BN_clear_free(less);
    BN_CTX_free(context);
    if (!ok) {
        BN_clear_free(exponent);
        return NULL;
    }
    return exponent;
}

enum {
    RSA_N,
    RSA_E,
    RSA_D,
    RSA_IQMP,
    RSA_P,
    RSA_Q,
    RSA_IN_FILE,
    RSA_DMP1 = RSA_IN_FILE,
    RSA_DMQ1,
    RSA_PARTS
};

static EVP_PKEY *rsa_from(struct fields *fields)
{
    static const char *const names[RSA_PARTS] = {
        OSSL_PKEY_PARAM_RSA_N,         OSSL_PKEY_PARAM_RSA_E,
        OSSL_PKEY_PARAM_RSA_D,         OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
        OSSL_PKEY_PARAM_RSA_FACTOR1,   OSSL_PKEY_PARAM_RSA_FACTOR2,
        OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2,
    };
    BIGNUM *parts[RSA_PARTS] = {NULL};
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY *pkey = NULL;
    bool ok = builder != NULL;

    for (size_t i = 0; i < RSA_IN_FILE; i++) {
        struct byte_view part = fields_string(fields);

        parts[i] = part.length > 0 && part.length <= 2049 ? number_of(part) : NULL;
        ok = ok && parts[i];
    }
    if (ok && !fields->bad) {
        parts[RSA_DMP1] = exponent_of(parts[RSA_D], parts[RSA_P]);
        parts[RSA_DMQ1] = exponent_of(parts[RSA_D], parts[RSA_Q]);
        for (size_t i = 0; i < RSA_PARTS && ok; i++)
            ok = parts[i] && OSSL_PARAM_BLD_push_BN(builder, names[i], parts[i]) == 1;
        pkey = ok ? pkey_from("RSA", builder) : NULL;
    }
    for (size_t i = 0; i < RSA_PARTS; i++)
        BN_clear_free(parts[i]);
    OSSL_PARAM_BLD_free(builder);
    return pkey;
}

static EVP_PKEY *private_from(struct byte_view section)
{
    struct fields fields = fields_of(section.at, section.length);
    uint32_t check = fields_u32(&fields);
    const struct key_type *type;

    if (check != fields_u32(&fields))
        return NULL;
    type = key_type_find(fields_string(&fields));
    if (!type || fields.bad)
        return NULL;
    if (type->nid == NID_ED25519)
        return ed25519_from(&fields);
    return type->curve ? ecdsa_from(type, &fields) : rsa_from(&fields);
}

static enum key_file_kind bad(struct key_file *file, const char *what)
{
    error_set(&file->reason, "%s", what);
    return KEY_FILE_BAD;
}

static enum key_file_kind encrypted(struct key_file *file)
{
    error_set(&file->reason, "it is encrypted: load it into your ssh-agent with ssh-add");
    return KEY_FILE_LOCKED;
}

static enum key_file_kind foreign(struct key_file *file, struct byte_view type)
{
    error_set(&file->reason, "a key of type \"%.*s\", which only the ssh program can use",
              (int)(type.length < 64 ? type.length : 64), (const char *)type.at);
    return KEY_FILE_NEEDS_SSH;
}

static enum key_file_kind parse_inside(struct key_file *file, const char *path,
                                       struct byte_view inside)
{
    struct fields fields = fields_of(inside.at + sizeof MAGIC, inside.length - sizeof MAGIC);
    struct byte_view cipher = fields_string(&fields), kdf = fields_string(&fields), section, public;
    EVP_PKEY *private;

    (void)fields_string(&fields); /* options of the key derivation */
    if (fields_u32(&fields) != 1)
        return bad(file, "it does not hold exactly one key");
    public = fields_string(&fields);
    section = fields_string(&fields);
    if (fields.bad || buf_append(&file->public, public.at, public.length) < 0)
        return bad(file, "the file is cut off or damaged");
    if (!key_type_find(key_blob_type(public)))
        return foreign(file, key_blob_type(public));
    if (!view_is(cipher, "none") || !view_is(kdf, "none"))
        return encrypted(file);
    private = private_from(section);
    if (!private)
        return bad(file, "the private key in the file is damaged");
    file->key = key_create_take(private, path, &file->reason);
    if (!file->key)
        return KEY_FILE_BAD;
    if (view_equal(buf_view(&file->key->blob), public))
        return KEY_FILE_USABLE;
    key_destroy(file->key);
    file->key = NULL;
    return bad(file, "its public and its private half do not belong together");
}

/* `text`: what follows BEGIN_LINE. */
static enum key_file_kind parse_openssh(struct key_file *file, const char *path, const char *text,
                                        size_t length)
{
    const char *end = memmem(text, length, END_LINE, strlen(END_LINE));
    enum key_file_kind kind;
    unsigned char *bytes;
    struct byte_view inside;
    ssize_t decoded;

    if (!end)
        return bad(file, "the file is cut off or damaged");
    length = (size_t)(end - text);
    bytes = mem_alloc(length / 4 * 3 + 3);
    decoded = base64_decode(text, length, bytes);
    inside.at = bytes;
    inside.length = decoded > 0 ? (size_t)decoded : 0;
    if (inside.length < sizeof MAGIC || memcmp(bytes, MAGIC, sizeof MAGIC) != 0)
        kind = bad(file, "the file is damaged");
    else
        kind = parse_inside(file, path, inside);
    OPENSSL_cleanse(bytes, length / 4 * 3 + 3);
    mem_free_at(&bytes);
    return kind;
}

/* Files of all kinds, and what lies beside them. */

#define FILE_MAX 65536
#define PUBLIC_MAX 16384

/* OpenSSL asks for a passphrase; there is none. */
static int pem_passphrase(char *out, int room, int writing, void *context)
{
    bool *asked = context;

    (void)out, (void)room, (void)writing;
    *asked = true;
    return -1;
}

static enum key_file_kind parse_pem(struct key_file *file, const char *path, const char *text,
                                    size_t length)
{
    bool asked = false;
    BIO *bio = BIO_new_mem_buf(text, (int)length);
    EVP_PKEY *private = bio ? PEM_read_bio_PrivateKey(bio, NULL, pem_passphrase, &asked) : NULL;

    BIO_free(bio);
    ERR_clear_error();
    if (!private && asked)
        return encrypted(file);
    if (!private)
        return bad(file, "it is not a private key that OpenSSH or OpenSSL can read");
    file->key = key_create_take(private, path, &file->reason);
    if (!file->key)
        return KEY_FILE_BAD;
    (void)buf_append(&file->public, buf_text(&file->key->blob), file->key->blob.length);
    return KEY_FILE_USABLE;
}

void key_file_parse(struct key_file *file, const char *path, const char *text, size_t length)
{
    const char *begin = memmem(text, length, BEGIN_LINE, strlen(BEGIN_LINE));

    memset(file, 0, sizeof *file);
    buf_init(&file->public, PUBLIC_MAX);
    if (begin) {
        begin += strlen(BEGIN_LINE);
        file->kind = parse_openssh(file, path, begin, (size_t)(text + length - begin));
    } else {
        file->kind = parse_pem(file, path, text, length);
    }
}

void key_file_destroy(struct key_file *file)
{
    key_destroy(file->key);
    buf_destroy(&file->public);
}

/* A line "TYPE BASE64 COMMENT". */
static bool parse_public(struct buf *out, const char *text, size_t length)
{
    const char *end = memchr(text, '\n', length), *digits, *stop;
    unsigned char bytes[PUBLIC_MAX];
    struct byte_view key = {.at = bytes}, type = {.at = (const unsigned char *)text};
    ssize_t decoded;

    if (!end)
        end = text + length;
    digits = memchr(text, ' ', (size_t)(end - text));
    if (!digits)
        return false;
    type.length = (size_t)(digits - text);
    digits++;
    stop = memchr(digits, ' ', (size_t)(end - digits));
    if (!stop)
        stop = end;
    if (stop - digits > PUBLIC_MAX)
        return false;
    decoded = base64_decode(digits, (size_t)(stop - digits), bytes);
    key.length = decoded > 0 ? (size_t)decoded : 0;
    return type.length > 0 && view_equal(key_blob_type(key), type) &&
           buf_append(out, key.at, key.length) == 0;
}

static void read_neighbours(struct key_file *file, const char *path)
{
    AUTO_FREE char *public = mem_printf("%s.pub", path);
    AUTO_FREE char *certificate = mem_printf("%s-cert.pub", path);
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct stat status;

    file->certificate = access(certificate, R_OK) == 0;
    if (file->public.length == 0 && stat(public, &status) == 0 && S_ISREG(status.st_mode) &&
        fd_read_file(public, &text, NULL) == 0)
        (void)parse_public(&file->public, buf_text(&text), text.length);
}

/* Fills `text` (FILE_MAX bytes); -1: kind and reason say why not. */
static ssize_t read_bytes(struct key_file *file, const char *path, char *text)
{
    AUTO_FD int fd = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    struct stat status;
    size_t length = 0;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        file->kind = KEY_FILE_MISSING;
        return -1;
    }
    file->kind = KEY_FILE_BAD;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_errno(&file->reason, errno, "it cannot be read");
    if (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
        return error_set(&file->reason, "it is not a private key");
    while (length < FILE_MAX) {
        ssize_t got = fd_read(fd, text + length, FILE_MAX - length);

        if (got < 0)
            return error_errno(&file->reason, errno, "it cannot be read");
        if (got == 0)
            break;
        length += (size_t)got;
    }
    if (!parse_public(&file->public, text, length) && status.st_uid == getuid() &&
        (status.st_mode & 077) != 0)
        return error_set(
            &file->reason,
            "other users can read it, so OpenSSH and hvdrun do not use it: run chmod 600 on it");
    return (ssize_t)length;
}

void key_file_read(struct key_file *file, const char *path)
{
    char *text = mem_alloc(FILE_MAX);
    ssize_t length;

    memset(file, 0, sizeof *file);
    buf_init(&file->public, PUBLIC_MAX);
    length = read_bytes(file, path, text);
    if (length >= 0 && file->public.length > 0) {
        /* An identity may be named by its public half alone: the agent has the other one. */
        file->kind = KEY_FILE_LOCKED;
        error_set(&file->reason, "it is a public key, and the agent does not have the private one");
    } else if (length >= 0) {
        buf_destroy(&file->public);
        key_file_parse(file, path, text, (size_t)length);
    }
    OPENSSL_cleanse(text, FILE_MAX);
    mem_free_at(&text);
    read_neighbours(file, path);
}
