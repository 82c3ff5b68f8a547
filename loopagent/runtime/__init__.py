"""The shell: performs what the core asks for, and brings the outcomes back."""
