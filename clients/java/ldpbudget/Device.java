package ldpbudget;

/** The budget and the outbox of this device, in a file: each report is charged, drawn and kept before it is sent. */
public final class Device implements AutoCloseable {
  private long at;

  /** Limits are decimals of ε; `day` may be null. Limits that are there already are lowered, and not raised. */
  public Device(String path, String lifetime, String day) {
    byte[] why = new byte[256];
    at = Native.openDevice(Native.named(path), Native.named(lifetime), Native.named(day), why);
    if (at == 0) throw new IllegalArgumentException(Native.said(why));
  }

  /** True if nothing was kept before: say to the user that earlier reports do not count. */
  public synchronized boolean isFresh() {
    return Native.isFresh(open());
  }

  /** The report of a key, drawn now or before; null if it has arrived. */
  public synchronized Client.Drawn draw(String key, Client client, String answer) {
    if (answer == null) throw new IllegalArgumentException("the answer is null");
    return client.draw(open(), Native.named(key), Native.utf8(answer), false, 0, 0, null);
  }

  public synchronized Client.Drawn draw(String key, Client client, long answer) {
    return client.draw(open(), Native.named(key), null, false, Client.whole(answer), 0, null);
  }

  public synchronized Client.Drawn draw(String key, Client client, double answer) {
    return client.draw(open(), Native.named(key), null, true, 0, answer, null);
  }

  /** The report of a key has arrived: it is deleted, and its charge stays. */
  public synchronized void settle(String key) {
    byte[] why = new byte[256];
    if (Native.settle(open(), Native.named(key), why) < 0) throw new IllegalArgumentException(Native.said(why));
  }

  private long open() {
    if (at == 0) throw new IllegalStateException("the device is closed");
    return at;
  }

  @Override
  public synchronized void close() {
    Native.freeDevice(at);
    at = 0;
  }
}
