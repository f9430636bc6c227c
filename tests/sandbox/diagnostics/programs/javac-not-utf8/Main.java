class Main {
    String city = "München";
}
