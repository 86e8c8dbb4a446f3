/* The JNI layer of the clients for Java and Kotlin: bytes in, bytes out. Java makes and reads the UTF-8. */
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>

#include "ldp_budget.h"

/* A copy of an array with a NUL after it; NULL for null, or without memory. */
static uint8_t *copied(JNIEnv *env, jbyteArray array, jsize *size) {
    *size = array ? (*env)->GetArrayLength(env, array) : 0;
    uint8_t *copy = array ? calloc((size_t)*size + 1, 1) : NULL;
    if (copy) (*env)->GetByteArrayRegion(env, array, 0, *size, (jbyte *)copy);
    return copy;
}

static void put(JNIEnv *env, jbyteArray array, const void *bytes) {
    (*env)->SetByteArrayRegion(env, array, 0, (*env)->GetArrayLength(env, array), (const jbyte *)bytes);
}

JNIEXPORT jlong JNICALL Java_ldpbudget_Native_open(JNIEnv *env, jclass class, jbyteArray definition, jbyteArray digest, jbyteArray why) {
    (void)class;
    char said[256] = "";
    jsize size, digits;
    uint8_t *text = copied(env, definition, &size), *agreed = copied(env, digest, &digits);
    ldp_client *client = ldp_client_new(text, (size_t)size, (const char *)agreed, said, sizeof said);
    free(text), free(agreed);
    put(env, why, said);
    return (jlong)(intptr_t)client;
}

JNIEXPORT void JNICALL Java_ldpbudget_Native_free(JNIEnv *env, jclass class, jlong client) {
    (void)env, (void)class;
    ldp_client_free((ldp_client *)(intptr_t)client);
}

JNIEXPORT jint JNICALL Java_ldpbudget_Native_size(JNIEnv *env, jclass class, jlong client) {
    (void)env, (void)class;
    return (jint)ldp_client_report_size((const ldp_client *)(intptr_t)client);
}

JNIEXPORT jlong JNICALL Java_ldpbudget_Native_openDevice(JNIEnv *env, jclass class, jbyteArray path, jbyteArray lifetime, jbyteArray day, jbyteArray why) {
    (void)class;
    char said[256] = "";
    jsize size;
    uint8_t *at = copied(env, path, &size), *whole = copied(env, lifetime, &size), *today = copied(env, day, &size);
    ldp_device *device = ldp_device_open((const char *)at, (const char *)whole, (const char *)today, said, sizeof said);
    free(at), free(whole), free(today);
    put(env, why, said);
    return (jlong)(intptr_t)device;
}

JNIEXPORT void JNICALL Java_ldpbudget_Native_freeDevice(JNIEnv *env, jclass class, jlong device) {
    (void)env, (void)class;
    ldp_device_free((ldp_device *)(intptr_t)device);
}

JNIEXPORT jboolean JNICALL Java_ldpbudget_Native_isFresh(JNIEnv *env, jclass class, jlong device) {
    (void)env, (void)class;
    return (jboolean)ldp_device_is_fresh((const ldp_device *)(intptr_t)device);
}

JNIEXPORT jint JNICALL Java_ldpbudget_Native_settle(JNIEnv *env, jclass class, jlong device, jbyteArray key, jbyteArray why) {
    (void)class;
    char said[256] = "";
    jsize size;
    uint8_t *name = copied(env, key, &size);
    jint status = ldp_device_settle((ldp_device *)(intptr_t)device, (const char *)name, said, sizeof said);
    free(name);
    put(env, why, said);
    return status;
}

/* A report of a text, or of a number if `text` is null and `real` is true, or of an integer; of a device if there is one. */
JNIEXPORT jint JNICALL Java_ldpbudget_Native_draw(JNIEnv *env, jclass class, jlong device_at, jlong client_at, jbyteArray key, jbyteArray text,
                                                  jboolean real, jlong integer, jdouble number, jbyteArray secret, jbyteArray report,
                                                  jbyteArray label, jbyteArray why) {
    (void)class;
    const ldp_client *client = (const ldp_client *)(intptr_t)client_at;
    ldp_device *device = (ldp_device *)(intptr_t)device_at;
    char said[256] = "", named[33] = "";
    jsize size, secret_size, key_size;
    uint8_t *answer = copied(env, text, &size), *own = copied(env, secret, &secret_size), *name = copied(env, key, &key_size);
    size_t bytes = ldp_client_report_size(client);
    uint8_t *drawn = malloc(bytes ? bytes : 1);
    const char *under = (const char *)name;
    jint status = -1;
    if (!drawn || (text && !answer)) snprintf(said, sizeof said, "there is no memory left");
    else if (device && text) status = ldp_device_text(device, client, under, answer, (size_t)size, drawn, named, said, sizeof said);
    else if (device && real) status = ldp_device_number(device, client, under, number, drawn, named, said, sizeof said);
    else if (device) status = ldp_device_integer(device, client, under, (uint64_t)integer, drawn, named, said, sizeof said);
    else if (text) status = ldp_client_text(client, answer, (size_t)size, own, (size_t)secret_size, drawn, named, said, sizeof said);
    else if (real) status = ldp_client_number(client, number, own, (size_t)secret_size, drawn, named, said, sizeof said);
    else status = ldp_client_integer(client, (uint64_t)integer, own, (size_t)secret_size, drawn, named, said, sizeof said);
    if (status == 0) put(env, report, drawn), put(env, label, named);
    put(env, why, said);
    free(answer), free(own), free(name), free(drawn);
    return status;
}
