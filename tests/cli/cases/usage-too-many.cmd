glyd pack a b c
