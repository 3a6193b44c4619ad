# The payload of a trial boot.
true
