public class Main {
    static int depth(int level) {
        return depth(level + 1) + 1;
    }

    public static void main(String[] args) {
        System.out.println(depth(0));
    }
}
