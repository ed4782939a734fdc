glyd pack a out --layot fast
