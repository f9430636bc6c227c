package shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.data.mongodb.core.MongoTemplate;

@SpringBootApplication
public class Application {
    record Report(int rows) {}

    record Printer(Report report) {}

    public static void main(String[] args) {
        SpringApplication.run(Application.class, args);
    }

    @Bean
    Report report(MongoTemplate template) {
        return new Report(Integer.parseInt("seven"));
    }

    @Bean
    Printer printer(Report report) {
        return new Printer(report);
    }
}
