import java.util.ArrayList;

public class Main {
    public static void main(String[] args) {
        var kept = new ArrayList<byte[]>();
        while (true) {
            kept.add(new byte[1024 * 1024]);
        }
    }
}
