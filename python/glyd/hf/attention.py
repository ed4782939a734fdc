"""Attention that gives the same bits each time, for comparing texts."""


def repeatable_attention():
    """Context in which torch's scaled_dot_product_attention leaves cuDNN out.

    cuDNN's kernels split the keys over blocks whose order is not fixed: with torch 2.11 on an H200 a bf16 model differs from
    itself from 65 keys and 8 sequences on. Flash, memory-efficient and plain attention repeat themselves.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
