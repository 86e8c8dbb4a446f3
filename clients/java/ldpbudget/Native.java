package ldpbudget;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** The functions of the C library, and texts as bytes. */
final class Native {
  static {
    System.loadLibrary("ldp_budget_jni");
  }

  private Native() {}

  static native long open(byte[] definition, byte[] digest, byte[] why);

  static native void free(long client);

  static native int size(long client);

  static native long openDevice(byte[] path, byte[] lifetime, byte[] day, byte[] why);

  static native void freeDevice(long device);

  static native boolean isFresh(long device);

  static native int settle(long device, byte[] key, byte[] why);

  static native int draw(
      long device, long client, byte[] key, byte[] text, boolean real, long integer, double number, byte[] secret, byte[] report, byte[] label, byte[] why);

  /** UTF-8. JNI's own texts are another encoding, and `getBytes` writes a question mark for half of a character. */
  static byte[] utf8(String text) {
    if (text == null) return null;
    try {
      ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] bytes = new byte[encoded.remaining()];
      encoded.get(bytes);
      return bytes;
    } catch (CharacterCodingException error) {
      throw new IllegalArgumentException("a text with half of a character has no UTF-8 form", error);
    }
  }

  /** A text that ends with a NUL, for C: one with a NUL inside would be cut. */
  static byte[] named(String text) {
    if (text != null && text.indexOf('\0') >= 0) throw new IllegalArgumentException("the text has a NUL");
    return utf8(text);
  }

  /** The text of a buffer, up to its NUL. */
  static String said(byte[] buffer) {
    int end = 0;
    while (end < buffer.length && buffer[end] != 0) end++;
    return new String(buffer, 0, end, StandardCharsets.UTF_8);
  }
}
