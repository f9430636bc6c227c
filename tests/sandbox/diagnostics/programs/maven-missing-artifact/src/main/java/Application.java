package shop;

public class Application {
    @Deprecated(forRemoval = true)
    static void old() {}

    static class Caller {
        static void call() {
            java.util.List raw = new java.util.ArrayList();
            raw.add("unchecked");
            Thread.currentThread().getId();
        }
    }

    public static void main(String[] args) {
        Caller.call();
    }
}
