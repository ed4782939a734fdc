glyd pack a out --threads many
