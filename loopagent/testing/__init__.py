"""What tests of stores and agents need."""
