public class Main {
    static int add(int a, int b) {
        return a + b;
    }
}
