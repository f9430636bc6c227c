package uom.training;

/** What the snapshot is made and proven with. */
public class Training {
    public static void main(String[] args) {
        System.out.println("žluťoučký 日本語 😀");
    }
}
