public class Main {
    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(() -> { Object nothing = null; nothing.toString(); }, "worker \"7\"");
        worker.start();
        worker.join();
        throw new java.io.IOException("disk");
    }
}
