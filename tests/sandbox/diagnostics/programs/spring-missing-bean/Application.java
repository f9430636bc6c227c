package shop;

import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.annotation.Id;
import org.springframework.data.mongodb.repository.MongoRepository;

@SpringBootApplication
public class Application implements CommandLineRunner {
    private final Orders orders;

    Application(Orders orders) {
        this.orders = orders;
    }

    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }

    @Override
    public void run(String... args) {
        System.out.println(orders.count());
    }

    static class Order {
        @Id
        String id;
    }

    // Spring Data does not look for repositories inside of other types.
    interface Orders extends MongoRepository<Order, String> {}
}
