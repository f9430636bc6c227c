import java.util.List;

public class Main {
    record Order(int id, String customer) {}

    public static void main(String[] args) {
        List<Order> orders = List.of(new Order(101, "Anna"));
        // error: a comment that only looks like a compiler's message
        int first = orders.getFirst().customer();
        System.out.println(first + orders.lenght());
    }
}
