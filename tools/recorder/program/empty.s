// An assembly file lets Go files declare functions without a body, as the go:linkname ones do.
