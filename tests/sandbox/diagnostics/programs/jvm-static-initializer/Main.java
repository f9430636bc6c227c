public class Main {
    static final int LIMIT = Integer.parseInt("twelve");

    public static void main(String[] args) {
        System.out.println(LIMIT);
    }
}
