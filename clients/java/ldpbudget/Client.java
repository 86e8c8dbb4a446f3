package ldpbudget;

/**
 * A client of the definition whose digest you pin in your app. It may be shared by threads. An answer is a text (the name of an
 * answer, or a word), a long (where answers have no names), or a double of a range.
 */
public final class Client implements AutoCloseable {
  /** A report, which is sent once, and the label that is sent with it: empty where nothing is memoized. */
  public record Drawn(byte[] report, String label) {}

  private long at;

  /** @throws IllegalArgumentException if the definition is refused */
  public Client(String definition, String digest) {
    byte[] why = new byte[256];
    at = Native.open(Native.utf8(definition), Native.named(digest), why);
    if (at == 0) throw new IllegalArgumentException(Native.said(why));
  }

  /** One report; `secret` may be null where nothing is memoized. */
  public Drawn randomize(String answer, byte[] secret) {
    if (answer == null) throw new IllegalArgumentException("the answer is null");
    return draw(0, null, Native.utf8(answer), false, 0, 0, secret);
  }

  public Drawn randomize(long answer, byte[] secret) {
    return draw(0, null, null, false, whole(answer), 0, secret);
  }

  public Drawn randomize(double answer, byte[] secret) {
    return draw(0, null, null, true, 0, answer, secret);
  }

  static long whole(long answer) {
    if (answer < 0) throw new IllegalArgumentException("an answer must be at least 0: got " + answer);
    return answer;
  }

  /** Null if the report has arrived. */
  synchronized Drawn draw(long device, byte[] key, byte[] text, boolean real, long integer, double number, byte[] secret) {
    if (at == 0) throw new IllegalStateException("the client is closed");
    byte[] report = new byte[Native.size(at)];
    byte[] label = new byte[33];
    byte[] why = new byte[256];
    int status = Native.draw(device, at, key, text, real, integer, number, secret, report, label, why);
    if (status == -2) throw new OverBudgetException(Native.said(why));
    if (status < 0) throw new IllegalArgumentException(Native.said(why));
    return status == 0 ? new Drawn(report, Native.said(label)) : null;
  }

  @Override
  public synchronized void close() {
    Native.free(at);
    at = 0;
  }
}
