//! Values of any Arrow type as bytes, one row at a time.
