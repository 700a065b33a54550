//! Shapes of schemas, and damage of every byte.
