package orders;

import java.time.LocalDate;
import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.annotation.Id;
import org.springframework.data.mongodb.core.mapping.Document;
import org.springframework.data.mongodb.repository.MongoRepository;

/** A translation that kept the names of the object mapper it came from. */
@SpringBootApplication
public class Application {
    public static void main(String[] args) {
        var orders = SpringApplication.run(Application.class, args).getBean(Orders.class);
        List<Order> open = orders.findByShippedIsNull().toList();
        System.out.println(open.getFirst().Placed);
    }
}

@Document("orders")
record Order(@Id Integer id, LocalDate placed, LocalDate shipped) {}

interface Orders extends MongoRepository<Order, Integer> {
    List<Order> findByShippedIsNull();
}
