/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's part of the store of torch.distributed. */
const char torch_store_feature[] = "a store for torch.distributed";
