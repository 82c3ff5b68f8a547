"""Real processes, killed, starved and replaced while runs go on."""
