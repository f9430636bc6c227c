package com.acme;

import java.util.List;

public class Main {
    static class OrderException extends RuntimeException {
        OrderException(String message, Throwable cause) {
            super(message, cause);
        }
    }

    static int first(List<Integer> amounts) {
        return amounts.get(0);
    }

    public static void main(String[] args) {
        System.err.println("reading orders");
        try {
            first(List.of());
        } catch (IndexOutOfBoundsException error) {
            throw new OrderException("no orders\nfor customer 7", error);
        }
    }
}
