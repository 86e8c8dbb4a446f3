import java.nio.file.Files;
import java.nio.file.Path;
import ldpbudget.Client;
import ldpbudget.Device;
import ldpbudget.OverBudgetException;

/** Draws reports of an answer under the budget of a device:   Example DEFINITION.json DIGEST ANSWER DEVICE.json */
public final class Example {
  public static void main(String[] words) throws Exception {
    String definition = Files.readString(Path.of(words[0]));
    try (Client client = new Client(definition, words[1]);
        Device device = new Device(words[3], "2.5", "2.5")) {
      for (int day = 0; day < 4; day++) {
        try {
          Client.Drawn drawn = device.draw("day " + day, client, words[2]);
          Client.Drawn again = device.draw("day " + day, client, words[2]);
          if (!java.util.Arrays.equals(drawn.report(), again.report())) throw new AssertionError("another report");
          System.out.println(java.util.HexFormat.of().formatHex(drawn.report()));
          device.settle("day " + day);
        } catch (OverBudgetException error) {
          System.out.println(error.getMessage());
        }
      }
    }
  }
}
