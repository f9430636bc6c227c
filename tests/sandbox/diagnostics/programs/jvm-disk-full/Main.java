import java.io.FileOutputStream;
import java.io.IOException;

public class Main {
    public static void main(String[] args) throws IOException {
        try (var rows = new FileOutputStream("/dev/full")) {
            for (int row = 0; row < 100_000; row++) rows.write("order\n".getBytes());
        }
    }
}
