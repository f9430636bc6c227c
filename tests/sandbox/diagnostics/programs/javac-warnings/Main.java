import java.util.ArrayList;
import java.util.List;

public class Main {
    @Deprecated(forRemoval = true)
    static class Old {
        static void go() {}
    }

    public static void main(String[] args) {
        List raw = new ArrayList();
        raw.add("Příliš žluťoučký");
        new Thread(() -> {}).getId();
    }
}

class Other {
    void call() {
        Main.Old.go();
    }
}
