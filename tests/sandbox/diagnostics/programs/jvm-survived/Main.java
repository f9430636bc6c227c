public class Main {
    public static void main(String[] args) {
        new IllegalStateException("printed, not thrown").printStackTrace();
        System.err.println("Main.java:1: error: not a compiler");
        System.exit(3);
    }
}
