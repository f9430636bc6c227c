package shop;

import org.slf4j.LoggerFactory;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class Application implements CommandLineRunner {
    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }

    @Override
    public void run(String... args) {
        System.out.println("Description:\n\nnothing\n\nAction:\n\nnone\n");
        System.out.println("Application run failed");
        System.out.println("com.mongodb.MongoTimeoutException: Timed out, servers=[{address=localhost:27017, type=UNKNOWN}]");
        System.out.println("src/main/java/shop/Application.java:[3,4] cannot find symbol");
        LoggerFactory.getLogger(Application.class).error("it went wrong, and on", new IllegalStateException("caught"));
        System.exit(3);
    }
}
