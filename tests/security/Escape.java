import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** Tries to leave the sandbox in every way a program can think of and reports what happened. */
public class Escape {
    interface Attempt {
        String run() throws Exception;
    }

    static final Map<String, String> REPORT = new LinkedHashMap<>();

    static void attempt(String name, Attempt attempt) {
        String outcome;
        try {
            outcome = "SUCCEEDED: " + attempt.run();
        } catch (Throwable refused) {
            outcome = "refused: " + refused.getClass().getSimpleName();
        }
        REPORT.put(name, outcome);
        System.out.println(name + ": " + outcome);
    }

    static String read(String path) throws IOException {
        byte[] content = Files.readAllBytes(Path.of(path));
        return content.length + " bytes";
    }

    static String list(String path) throws IOException {
        try (var entries = Files.list(Path.of(path))) {
            String names = entries.map(p -> p.getFileName().toString()).sorted().collect(Collectors.joining(","));
            if (names.isEmpty()) {
                throw new IOException("empty");
            }
            return names;
        }
    }

    static String write(String path) throws IOException {
        Files.write(Path.of(path), "x".getBytes(), StandardOpenOption.WRITE);
        return "written";
    }

    static String connect(String host, int port) throws IOException {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(host, port), 2000);
            return "connected";
        }
    }

    static String shell(String command) throws Exception {
        Process process = new ProcessBuilder("sh", "-c", command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes()).strip();
        if (process.waitFor() != 0) {
            throw new IOException(output);
        }
        return output;
    }

    public static void main(String[] arguments) throws Exception {
        attempt("shadow", () -> read("/etc/shadow"));
        attempt("root home", () -> list("/root"));
        attempt("homes", () -> read(System.getenv("TARGET_HOME") + "/.bashrc"));
        attempt("platform key", () -> read(System.getenv("TARGET_KEY")));
        attempt("platform data", () -> list(System.getenv("TARGET_DATA")));
        attempt("other sandbox through the host", () -> read(System.getenv("TARGET_OTHER")));
        attempt("other sandbox through init", () -> read("/proc/1/root" + System.getenv("TARGET_OTHER")));
        attempt("other sandbox's workspace", () -> list(System.getenv("TARGET_WORKSPACE")));
        attempt("core pattern", () -> write("/proc/sys/kernel/core_pattern"));
        attempt("write below usr", () -> { Files.createFile(Path.of("/usr/escaped")); return "created"; });
        attempt("docker socket", () -> { Files.size(Path.of("/var/run/docker.sock")); return "there"; });
        attempt("platform port", () -> connect("127.0.0.1", Integer.parseInt(System.getenv("TARGET_PORT"))));
        attempt("network", () -> connect("192.0.2.1", 80));
        attempt("name service", () -> java.net.InetAddress.getByName("example.org").getHostAddress());
        attempt("mount", () -> shell("mount -t tmpfs none /mnt"));
        attempt("new user namespace", () -> shell("unshare -U true"));
        attempt("become root", () -> shell("su -c true root </dev/null"));
        attempt("environment of init", () -> shell("tr '\\0' '\\n' < /proc/1/environ | grep -iE 'key|token|secret'"));
        attempt("host processes", () -> shell("ls /proc | grep -E '^[0-9]+$' | xargs -I{} cat /proc/{}/comm | grep -x pytest"));
        String json = REPORT.entrySet().stream()
            .map(e -> "\"" + e.getKey() + "\": \"" + e.getValue().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + "\"")
            .collect(Collectors.joining(",\n  ", "{\n  ", "\n}\n"));
        Files.writeString(Path.of(System.getenv("UOM_RESULT_FILE")), json);
    }
}
