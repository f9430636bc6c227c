package shop;

class Order {
    Customer customer;
    Object[] rows = new java.util.ArrayList<String>().toArray(7, 8);
}
