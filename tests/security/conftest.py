from tests.java import java_25

__all__ = ["java_25"]
