"""When connections of two captures began: held against each other one by one, and in their rhythm."""
