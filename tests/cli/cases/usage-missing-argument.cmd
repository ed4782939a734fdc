glyd pack a
