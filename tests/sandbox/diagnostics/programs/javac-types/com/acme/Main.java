package com.acme;

import java.util.Map;
import org.missing.Thing;

public class Main implements Runnable {
    static void pay(int amount, String currency) {}

    int discount(boolean regular) {
        if (regular) return 5;
    }

    public static void main(String[] args) {
        int total = "twelve";
        pay(12);
        Map<String, Integer> counts = new java.util.HashMap<>();
        counts.put(1, "one");
        final int fixed = 1;
        fixed = 2;
        Thread.sleep(10);
        System.out.println(total + undefined);
        this.run();
    }
}
