import java.util.HashMap;
import java.util.Map;

/** Keeps a table of short texts, and replaces so many thousands of them: much for the collector to do. */
public class Collect {
    public static void main(String[] arguments) {
        int thousands = Integer.parseInt(arguments[0]);
        Map<Integer, String> table = new HashMap<>();
        for (int i = 0; i < thousands * 1000; i++) {
            int key = (int) (i * 7919L % 600_011);
            table.put(key, key + "/" + i);
        }
        for (Map.Entry<Integer, String> entry : table.entrySet()) {
            if (!entry.getValue().startsWith(entry.getKey() + "/")) {
                System.out.println("Collect WRONG");
                System.exit(1);
            }
        }
        System.out.println("Collect ok entries=" + table.size());
    }
}
