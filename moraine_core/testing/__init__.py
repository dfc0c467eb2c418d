"""What any plugin package can use in its own tests: data makers and the conformance kit."""
