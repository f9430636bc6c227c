import java.util.Map;

public class Main {
    static final Map<Integer, String> CUSTOMERS = Map.of(1, "Anna");

    static String nameOf(int customer) {
        String name = CUSTOMERS.get(customer);
        if (name == null) {
            throw new IllegalArgumentException("no customer " + customer);
        }
        return name;
    }

    public static void main(String[] args) {
        System.out.println(nameOf(1));
        System.out.println(nameOf(2));
    }
}
