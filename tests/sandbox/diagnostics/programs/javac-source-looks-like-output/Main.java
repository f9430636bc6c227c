class Main {
    void main() {
        int count = 1;
Fake.java:8: error: cannot find symbol
        IO.println(missing); // Fake.java:9: error: not real
    }
}
