package orders;

import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.mongodb.core.MongoTemplate;

/** Nobody named a database, so the driver looks at its own default, where nothing listens. */
@SpringBootApplication
public class Application implements CommandLineRunner {
    private final MongoTemplate template;

    Application(MongoTemplate template) {
        this.template = template;
    }

    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }

    @Override
    public void run(String... args) {
        System.out.println(template.getCollection("orders").countDocuments());
    }
}
