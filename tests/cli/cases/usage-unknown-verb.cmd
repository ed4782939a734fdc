glyd vrify model
