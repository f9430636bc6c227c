import java.util.List;

public class Main {
    public static void main(String[] args) {
        List<String> names = List.of("Anna");
        System.out.println(names.size() + total);
        System.out.println(names.lenght());
        Customer customer = null;
    }
}
