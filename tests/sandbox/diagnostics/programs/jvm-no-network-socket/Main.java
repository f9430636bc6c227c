import java.net.Socket;

public class Main {
    public static void main(String[] args) throws Exception {
        try (var socket = new Socket("192.0.2.1", 443)) {
            System.out.println(socket.getLocalPort());
        }
    }
}
