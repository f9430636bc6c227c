package shop;

import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.annotation.Id;
import org.springframework.data.mongodb.repository.MongoRepository;

@SpringBootApplication
public class Application {
    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }
}

class Order {
    @Id
    String id;

    String customer;
}

interface Orders extends MongoRepository<Order, String> {
    List<Order> findByCustmer(String customer);
}
